"""How the cluster and the jobs' progress follow from decisions, one module a family."""
