"""Line logs, documents and databases: what is new in a file, as records."""
