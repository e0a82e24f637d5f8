package yunikorn

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// TaskGroup is a number of equal pods of an application that start together with the other groups.
type TaskGroup struct {
	Name string `json:"name"`
	// MinMember is how many pods of the group the application needs to start.
	MinMember int32 `json:"minMember"`
	// MinResource is what each pod of the group requests at least.
	MinResource corev1.ResourceList `json:"minResource"`

	// Labels and the fields below them are those of the pods of the group.
	Labels                    map[string]string                 `json:"labels,omitempty"`
	Annotations               map[string]string                 `json:"annotations,omitempty"`
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// maxMembers bounds the pods of all groups together, because the scheduler holds a place for each of them.
const maxMembers = 100_000

// ReadTaskGroups reads the annotation [TaskGroupsKey], a JSON list. The error lists everything that is wrong with it.
func ReadTaskGroups(text string) ([]TaskGroup, error) {
	var groups []TaskGroup
	if err := bounds.UnmarshalJSON([]byte(text), &groups); err != nil {
		return nil, fmt.Errorf("not a JSON list of task groups: %w", err)
	}
	if len(groups) == 0 {
		return nil, errors.New("the list has no task group")
	}
	var problems []error
	refuse := func(format string, arguments ...any) { problems = append(problems, fmt.Errorf(format, arguments...)) }
	seen, members := map[string]bool{}, int64(0)
	for i, group := range groups {
		at := fmt.Sprintf("[%d]", i)
		switch {
		case group.Name == "":
			refuse("%s.name is missing", at)
		case seen[group.Name]:
			refuse("%s.name: %q stands twice", at, group.Name)
		}
		seen[group.Name] = true
		if group.MinMember < 1 {
			refuse("%s.minMember is %d, allowed is a number from 1 up", at, group.MinMember)
		}
		members += int64(max(group.MinMember, 0))
		if len(group.MinResource) == 0 {
			refuse("%s.minResource is missing", at)
		}
		for name, quantity := range group.MinResource {
			if quantity.Sign() < 0 {
				refuse("%s.minResource.%s is negative: %s", at, name, quantity.String())
			}
		}
	}
	if members > maxMembers {
		refuse("the groups have %d pods, allowed are %d", members, maxMembers)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return groups, nil
}

// GangParameters say how an application waits for its task groups.
type GangParameters struct {
	// Timeout is how long places are held for pods that do not exist yet.
	Timeout time.Duration
	// IsHard says that the application fails after the timeout. Otherwise its pods are scheduled as they are.
	IsHard bool
}

// DefaultGangTimeout holds for applications that name none.
const DefaultGangTimeout = 15 * time.Minute

// ReadGangParameters reads the annotation [GangParametersKey]: pairs key=value, separated by spaces. Keys that do not
// concern task groups are left alone. A value that cannot be read is a problem, and the default holds in its place.
func ReadGangParameters(text string) (p GangParameters, problems []string) {
	p.Timeout = DefaultGangTimeout
	for _, pair := range strings.Fields(text) {
		switch key, value, _ := strings.Cut(pair, "="); key {
		case "placeholderTimeoutInSeconds":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil || seconds < 0 || seconds > math.MaxInt32 {
				problems = append(problems, fmt.Sprintf("%s is %q, allowed is a number of seconds from 0 up; using %d",
					key, value, int(DefaultGangTimeout.Seconds())))
			} else if seconds > 0 {
				p.Timeout = time.Duration(seconds) * time.Second
				if p.Timeout > DefaultGangTimeout {
					problems = append(problems, fmt.Sprintf("%s is %d: the scheduler holds places for %d seconds at most, unless its flag --max-placeholder-timeout allows more",
						key, seconds, int(DefaultGangTimeout.Seconds())))
				}
			}
		case "gangSchedulingStyle":
			p.IsHard = value == "Hard"
			if value != "Hard" && value != "Soft" {
				problems = append(problems, fmt.Sprintf("%s is %q, allowed is Hard or Soft; using Soft", key, value))
			}
		}
	}
	return p, problems
}
