"""Line logs, documents and databases: read what is new in a file as records."""
