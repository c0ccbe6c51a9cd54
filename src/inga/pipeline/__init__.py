"""Turn traces into small tables with Spark: certify, order, stamp, measure."""
