"""Where rows enter: arrays, dataframes and files, each as a stream of Arrow record batches. Holds people's rows."""
