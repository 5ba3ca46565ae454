"""Networks of other libraries: read in as networks of ours, proved against their source, written as NIR."""
