"""Line and JSON faces of the store."""
