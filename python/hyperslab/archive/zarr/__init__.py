"""What zarr-python asks of us; `archive.zarr_store` and `archive.zarr_pipeline` have names that programs hold."""
