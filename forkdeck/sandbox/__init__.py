"""What the operating system enforces on the commands and files of a run.

Owns the views (what a run sees of the machine), the bubblewrap argument list, the environment of
children, the process runner and the workspaces made of them. Data comes in as inside paths and
commands from the tools and from the worktree manager; it goes to the host's files and processes.
"""
