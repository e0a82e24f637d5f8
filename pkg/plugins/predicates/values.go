package predicates

import (
	"errors"
	"math"

	"hekla.sh/hekla/pkg/framework"
)

// isWeight checks the weight of a score.
func isWeight(value any) error {
	if weight := value.(int); weight < 0 || weight > math.MaxInt32 {
		return errors.New("a whole number from 0 to 2147483647")
	}
	return nil
}

// longestTimeout limits timeouts to a day, in seconds.
const longestTimeout = 24 * 60 * 60

func isTimeout(value any) error {
	if seconds := value.(int); seconds < 0 || seconds > longestTimeout {
		return errors.New("a whole number of seconds from 0 to 86400")
	}
	return nil
}

// isWait checks a timeout that must be above zero.
func isWait(value any) error {
	if seconds := value.(int); seconds < 1 || seconds > longestTimeout {
		return errors.New("a whole number of seconds from 1 to 86400")
	}
	return nil
}

func isShape(value any) error {
	_, err := readShape(value)
	return err
}

// The largest values of a shape.
const maxUtilization, maxScore = 100, 10

var errShape = errors.New("a list of points such as {utilization: 0, score: 10}, with a utilization from 0 to 100 that grows from " +
	"point to point, and a score from 0 to 10")

// readShape reads the points of a shape. Nil has no points.
func readShape(value any) ([]framework.ShapePoint, error) {
	if value == nil || value == "" {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, errShape
	}
	var shape []framework.ShapePoint
	for _, item := range list {
		fields, _ := item.(map[string]any)
		utilization, hasUtilization := fields["utilization"].(int)
		score, hasScore := fields["score"].(int)
		switch {
		case !hasUtilization || !hasScore || len(fields) != 2,
			utilization < 0 || utilization > maxUtilization || score < 0 || score > maxScore,
			len(shape) > 0 && utilization <= int(shape[len(shape)-1].Utilization):
			return nil, errShape
		}
		shape = append(shape, framework.ShapePoint{Utilization: int32(utilization), Score: int32(score)})
	}
	return shape, nil
}
