"""Kernels that judge, summarise and restore traces held in arrays: no Spark, no files."""
