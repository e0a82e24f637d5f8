package properties_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestReadReturnsWhatIsWritten(t *testing.T) {
	yes, no, delay, off := true, false, 12*time.Second, time.Duration(0)
	for key, values := range map[string]map[string]properties.Properties{
		scheduling.PreemptionPolicyKey:        {"default": {}, "fence": {TakesFence: true}, "disabled": {GivesNothing: true}},
		scheduling.PreemptionDelayKey:         {"12s": {PreemptionDelay: &delay}},
		scheduling.PriorityPolicyKey:          {"default": {}, "fence": {PriorityFence: true}},
		scheduling.PriorityOffsetKey:          {"0": {}, "-2147483648": {PriorityOffset: -1 << 31}, "+7": {PriorityOffset: 7}},
		scheduling.ApplicationSortPolicyKey:   {"fair": {FairOrder: &yes}, "fifo": {FairOrder: &no}, "stateaware": {FairOrder: &no}},
		scheduling.ApplicationSortPriorityKey: {"enabled": {PriorityOrder: &yes}, "disabled": {PriorityOrder: &no}},
		scheduling.MaxApplicationsKey:         {"1": {MaxApplications: 1}},
		scheduling.QuotaPreemptionDelayKey:    {"0": {QuotaPreemptionDelay: &off}, "0s": {QuotaPreemptionDelay: &off}, "12s": {QuotaPreemptionDelay: &delay}},
	} {
		for value, want := range values {
			got, problems := properties.Read(map[string]string{key: value, "example.com/other": "x"})
			if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%s: %s is read otherwise (-want +got):\n%s%v", key, value, diff, problems)
			}
		}
	}
}

func TestAValueThatCannotBeReadChangesOnlyItsProperty(t *testing.T) {
	for key, values := range map[string][]string{
		scheduling.PreemptionPolicyKey:        {"", "Fence", "off"},
		scheduling.PreemptionDelayKey:         {"", "soon", "30", "0s", "-1s"},
		scheduling.PriorityPolicyKey:          {"", "disabled"},
		scheduling.PriorityOffsetKey:          {"", "high", "1.5", "2147483648"},
		scheduling.ApplicationSortPolicyKey:   {"", "lifo"},
		scheduling.ApplicationSortPriorityKey: {"", "true"},
		scheduling.MaxApplicationsKey:         {"", "0", "-1", "many", "99999999999"},
		scheduling.QuotaPreemptionDelayKey:    {"", "never", "-1s"},
	} {
		for _, value := range values {
			annotations := map[string]string{key: value}
			want := properties.Properties{MaxApplications: 3}
			if other := scheduling.MaxApplicationsKey; key != other {
				annotations[other] = "3"
			} else {
				annotations[scheduling.PriorityOffsetKey], want = "3", properties.Properties{PriorityOffset: 3}
			}
			got, problems := properties.Read(annotations)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %q: %s", key, value, diff)
			}
			if len(problems) != 1 || problems[0].Key != key || problems[0].Value != value || problems[0].Allowed == "" {
				t.Errorf("%s: %q has the problems %v", key, value, problems)
			}
		}
	}
}

func TestProblemsNameKeyValueAndWhatIsAllowed(t *testing.T) {
	_, problems := properties.Read(map[string]string{scheduling.MaxApplicationsKey: "none", scheduling.PreemptionDelayKey: "soon"})
	want := []string{
		`annotation hekla.sh/preemption.delay is "soon", allowed is a duration above 0, such as 30s`,
		`annotation hekla.sh/maxapplications is "none", allowed is a whole number, at least 1`,
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
