package cohorts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// theCase is one case of any kind.
type theCase struct {
	ID, Kind, Title, Source, Note string
	FairSharing                   bool
	PreemptionStrategies          []string
	Cohorts                       []cohortSpec
	ClusterQueues                 []queueSpec
	Usage                         []queueAmounts
	Incoming                      json.RawMessage
	Admitted                      []admittedSpec
	Pending                       []pendingSpec
	Oracle                        []oracleSpec
	Nodes                         []nodeSpec
	OtherPods                     []podSpec
	Expect                        json.RawMessage
}

type cohortSpec struct {
	Name, ParentName string
	ResourceGroups   []groupSpec
	FairSharing      *fairSpec
}

type fairSpec struct{ Weight string }

type groupSpec struct {
	CoveredResources []string
	Flavors          []struct {
		Name      string
		Resources []struct {
			Name, NominalQuota           string
			BorrowingLimit, LendingLimit *string
		}
	}
}

type queueSpec struct {
	Name, CohortName string
	ResourceGroups   []groupSpec
	Preemption       struct {
		WithinClusterQueue, ReclaimWithinCohort string
		BorrowWithinCohort                      *struct {
			Policy               string
			MaxPriorityThreshold *int32
		}
	}
	FlavorFungibility struct{ WhenCanBorrow, WhenCanPreempt, Preference string }
	FairSharing       *fairSpec
}

type amountSpec struct{ Flavor, Resource, Amount string }

type queueAmounts struct {
	ClusterQueue string
	Amounts      []amountSpec
}

type admittedSpec struct {
	Name, ClusterQueue              string
	Priority                        int32
	Usage                           []amountSpec
	CreatedSeconds, ReservedSeconds int
	Evicted                         bool
	Pods                            []podSpec
}

type pendingSpec struct {
	Name, ClusterQueue string
	Priority           int32
	CreatedSeconds     int
	PodSets            []struct {
		Name     string
		Count    int32
		MinCount *int32
		Requests map[string]string
	}
}

type oracleSpec struct {
	Flavor, Resource, Mode string
	BorrowLevel            int
}

type nodeSpec struct {
	Name          string
	Flavors       []string
	Allocatable   map[string]string
	Unschedulable bool
}

type podSpec struct {
	Node     string
	Requests map[string]string
}

// cases calls a function for each case of a file, as a subtest.
func cases(t *testing.T, file string, run func(t *testing.T, c *theCase)) {
	folder := os.Getenv("COHORT_CASES")
	if folder == "" {
		folder = "testdata"
	}
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	var all []*theCase
	decode(t, text, &all)
	if len(all) == 0 {
		t.Fatalf("%s has no cases", file)
	}
	for _, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			t.Logf("%s (%s) %s", c.Title, c.Source, c.Note)
			if wrong := c.wrong(); wrong != "" {
				t.Fatal(wrong)
			}
			run(t, c)
		})
	}
}

// wrong says which pod set of a case has no name of its own, by which its pods are known, "" if all have.
func (c *theCase) wrong() string {
	for i := range c.Pending {
		p, named := &c.Pending[i], map[string]bool{"": true}
		for j := range p.PodSets {
			name := p.PodSets[j].Name
			if named[name] {
				return fmt.Sprintf("case %s: pending workload %s: podSets[%d]: the name %q is missing or that of another", c.ID, p.Name, j, name)
			}
			named[name] = true
		}
	}
	return ""
}

func TestACaseNamesAPodSetWithoutANameOfItsOwn(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": "C", "pending": [{"name": "w", "podSets": [{"name": "a"}, {"name": "b"}]}]}`: "",
		`{"id": "C", "pending": [{"name": "w", "podSets": [{}]}]}`:                           `case C: pending workload w: podSets[0]: the name "" is missing or that of another`,
		`{"id": "C", "pending": [{"name": "w", "podSets": [{"name": "a"}, {"name": "a"}]}]}`: `case C: pending workload w: podSets[1]: the name "a" is missing or that of another`,
	} {
		c := &theCase{}
		if decode(t, []byte(text), c); c.wrong() != want {
			t.Errorf("said is %q, want %q", c.wrong(), want)
		}
	}
}

// decode reads JSON, and refuses fields that are not known.
func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}
