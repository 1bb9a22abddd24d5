"""Volumes: what config and job ask for (`specification`, pure), which objects that means (`plan`, pure), and making and
removing them (`manager`)."""
