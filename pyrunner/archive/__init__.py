"""zip, zstd, raw and gzip archives, made and extracted fast and safely."""
