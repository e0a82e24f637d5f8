// Package trend says whether what is measured again and again grows.
//
// It must not know what is measured.
package trend

// Rise is by how much the straight line that fits the values best, by least squares, rises from the first of them to
// the last. It is 0 of fewer than two values, and below 0 if they fall.
func Rise(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	n := float64(len(values))
	var x, y, xx, xy float64
	for i, v := range values {
		x, y, xx, xy = x+float64(i), y+v, xx+float64(i)*float64(i), xy+float64(i)*v
	}
	return (n*xy - x*y) / (n*xx - x*x) * (n - 1)
}

// Mean is the mean of values, 0 of none.
func Mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / max(float64(len(values)), 1)
}
