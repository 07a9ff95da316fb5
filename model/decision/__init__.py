"""From similarities to decisions: calibrations and the thresholds that follow from them."""
