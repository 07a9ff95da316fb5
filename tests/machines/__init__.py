"""Several machines on one: network namespaces with their own addresses, to be cut off and brought back."""
