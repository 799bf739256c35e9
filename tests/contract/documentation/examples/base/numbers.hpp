void example(double loss, float logit, int nonfinite, int nans) {
EXAMPLE
}
