""".gitlab-ci.yml → jobs: pure, knows nothing of runners."""
