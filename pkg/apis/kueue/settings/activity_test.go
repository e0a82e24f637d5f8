package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestAClusterQueueNamesAllThatIsInTheWay(t *testing.T) {
	q := ClusterQueue{Stop: v1beta2.Hold, Groups: []ResourceGroup{{Flavors: []Flavors{{Name: "here"}, {Name: "gone"}, {Name: "lost"}}}},
		Checks: []Check{{Name: "absent"}, {Name: "inactive"}, {Name: "active"}, {Name: "foreign"}}}
	others := Others{
		Flavor: func(name string) (Flavor, bool) { return Flavor{}, name == "here" },
		Check: func(name string) (AdmissionCheck, bool) {
			check := AdmissionCheck{IsActive: name != "inactive"}
			if name == "foreign" {
				check.NotServed = "not here"
			}
			return check, name != "absent"
		},
		Cohort: func(string) (Cohort, bool) { return Cohort{}, false },
	}
	want := []Cause{
		{v1beta2.ReasonTerminating, "is terminating"},
		{v1beta2.ReasonStopped, "is stopped"},
		{v1beta2.ReasonFlavorNotFound, "references missing ResourceFlavor(s): gone,lost"},
		{v1beta2.ReasonAdmissionCheckNotFound, "references missing AdmissionCheck(s): absent"},
		{v1beta2.ReasonAdmissionCheckInactive, "references inactive AdmissionCheck(s): inactive"},
		{v1beta2.ReasonNotSupported, "AdmissionCheck foreign: not here"},
	}
	if diff := cmp.Diff(want, q.Causes(true, others)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	q = ClusterQueue{Stop: v1beta2.StopNone, Groups: q.Groups[:0], Checks: q.Checks[2:3]}
	if got := q.Causes(false, others); len(got) > 0 {
		t.Errorf("nothing is in the way, and it names %v", got)
	}
}
