package resources

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Saturated returns an amount in the unit of its dimension: thousandths of a core, bytes or a count. Unlike the amounts
// of an [Index] it is not cut to [MaxQuantity]: quotas may be larger than any node. What does not fit is [Unlimited],
// and a negative amount is zero.
func Saturated(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if quantity.Sign() <= 0 {
		return 0
	}
	scale := resource.Scale(0)
	if name == corev1.ResourceCPU {
		scale = resource.Milli
	}
	// An exact comparison of 1e3000000 would take as long as the number, and a conversion of what does not fit gives
	// any number.
	if quantity.AsApproximateFloat64() >= float64(math.MaxInt64)*math.Pow10(int(scale)) {
		return Unlimited
	}
	return quantity.ScaledValue(scale)
}
