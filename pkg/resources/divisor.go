package resources

// Divisor divides by one number, many times: multiplying by its inverse takes a fraction of the time of a division.
type Divisor struct {
	whole   int64   // what is divided by
	number  int64   // the same without the last bits of a large number
	shift   uint8   // how many these are
	inverse float64 // of number
}

// NewDivisor returns what divides by a number.
func NewDivisor(by int64) Divisor {
	d := Divisor{whole: by, number: by}
	if by <= 0 {
		return d
	}
	for d.number > mostExact {
		d.number, d.shift = d.number>>1, d.shift+1
	}
	d.inverse = 1 / float64(d.number)
	return d
}

// Millionths is what the function of that name returns for a divided by the number, 0 if the number is not positive.
func (d *Divisor) Millionths(a int64) int64 {
	switch {
	case d.whole <= 0, a <= 0:
		return 0
	case a >= d.whole:
		return Million
	}
	a = a >> d.shift * Million
	// The quotient is less than 2²¹, so the product of the floats misses it by one at most.
	quotient := int64(float64(a) * d.inverse)
	switch rest := a - quotient*d.number; {
	case rest < 0:
		return quotient - 1
	case rest >= d.number:
		return quotient + 1
	}
	return quotient
}
