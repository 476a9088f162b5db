"""Settings, rules, trust."""
