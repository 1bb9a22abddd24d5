"""One row per fact of the life of a job: real manager, real server, real bash and git."""
