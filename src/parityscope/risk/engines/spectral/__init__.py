"""The risk of diffuse attention at large n by a Fourier series, certified in value and gradient."""
