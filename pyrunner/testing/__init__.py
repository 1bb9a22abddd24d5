"""Test kit for pyrunner and for third-party executors: a fake GitLab, contract suites, a dummy executor."""
