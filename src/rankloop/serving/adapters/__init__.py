"""Between the service and a ranker: names, changes of items, estimates of the value of lists."""
