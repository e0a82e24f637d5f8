package supply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/informers"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/supply"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/fixture"
)

// contents are what is on a shelf, and what devices are taken.
func contents(t *rapid.T, s *supply.Shelf, factory informers.SharedInformerFactory) map[string]any {
	s.Follow()
	all := map[string]any{}
	volumes, err := factory.Core().V1().PersistentVolumes().Lister().List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volumes {
		all["volume "+v.Name] = v.Spec.ClaimRef
	}
	claims, err := s.Devices().ResourceClaims().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		all["claim "+c.Name] = c.Status.Allocation
	}
	slices, err := s.Devices().ListWithDeviceTaintRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, slice := range slices {
		all["slice "+slice.Name] = len(slice.Spec.Devices)
	}
	state, err := s.Devices().GatherAllocatedState()
	if err != nil {
		t.Fatal(err)
	}
	all["taken"] = state
	return all
}

func TestAShelfThatFollowsIsLikeOneThatIsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cache.New(cache.Options{})
		factory := informers.NewSharedInformerFactory(nil, 0)
		following := supply.NewShelf(c.Cluster, factory)
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "name"))
			var o supplies.Object
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				o = fixture.Volume(name, "class", "1Gi", "key", "value", fixture.OfClaim(fmt.Sprint("claim", step)))
			case 1:
				o = fixture.Slice(name, step)
			case 2:
				claim := fixture.DeviceClaim(name, "gpu", 1)
				if rapid.Bool().Draw(t, "is allocated") {
					claim.Status.Allocation = allocation(resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: name, Device: fmt.Sprint(step)})
				}
				o = claim
			}
			o.SetResourceVersion(fmt.Sprint(step))
			if rapid.IntRange(0, 3).Draw(t, "deletes") == 0 {
				c.Apply(cache.Delete{Object: o})
			} else {
				c.Apply(cache.Set{Object: o})
			}
			if rapid.Bool().Draw(t, "looks") {
				fresh := informers.NewSharedInformerFactory(nil, 0)
				want := contents(t, supply.NewShelf(c.Cluster, fresh), fresh)
				if diff := cmp.Diff(want, contents(t, following, factory)); diff != "" {
					t.Fatalf("after step %d (-new +following):\n%s", step, diff)
				}
			}
		}
	})
}

func allocation(results ...resourcev1.DeviceRequestAllocationResult) *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: results}}
}

func TestWhoOnlyLooksAfterADeviceTakesNothingOfIt(t *testing.T) {
	c := cache.New(cache.Options{})
	claim := fixture.DeviceClaim("claim", "gpu", 1)
	claim.Status.Allocation = allocation(resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: "watched", AdminAccess: ptr.To(true)},
		resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: "mine"},
		resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: "shared", ShareID: ptr.To(types.UID("a"))})
	c.Apply(cache.Set{Object: claim})
	s := supply.NewShelf(c.Cluster, informers.NewSharedInformerFactory(nil, 0))
	s.Follow()
	state, err := s.Devices().GatherAllocatedState()
	if err != nil {
		t.Fatal(err)
	}
	if len(state.AllocatedDevices) != 1 || len(state.AllocatedSharedDeviceIDs) != 1 {
		t.Errorf("taken are %v, shared %v", state.AllocatedDevices, state.AllocatedSharedDeviceIDs)
	}
}

func TestSharesAreNamedAfterTheirClaim(t *testing.T) {
	shares := func(name string) types.UID {
		s := supply.NewShelf(cache.New(cache.Options{}).Cluster, informers.NewSharedInformerFactory(nil, 0))
		claim := fixture.DeviceClaim(name, "gpu", 1)
		claim.Status.Allocation = allocation(resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: "shared", ShareID: ptr.To(types.UID("by chance"))})
		if err := s.Devices().SignalClaimPendingAllocation(claim.UID, claim); err != nil {
			t.Fatal(err)
		}
		return *s.Devices().Take()[0].Status.Allocation.Devices.Results[0].ShareID
	}
	first, again, other := shares("a"), shares("a"), shares("b")
	if first != again || first == other {
		t.Errorf("the shares are %s and %s, and %s of another claim", first, again, other)
	}
}

func TestALedgerNotesWhatIsWrittenAndWritesNothing(t *testing.T) {
	l := &supply.Ledger{}
	volume, claim := fixture.Volume("v", "class", "1Gi", "key", "value"), fixture.Claim("c", "class")
	if _, err := l.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.CoreV1().PersistentVolumeClaims("any").Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	volumes, claims := l.Take()
	if diff := cmp.Diff([]*corev1.PersistentVolume{volume}, volumes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]*corev1.PersistentVolumeClaim{claim}, claims); diff != "" {
		t.Error(diff)
	}
	if volumes, claims = l.Take(); len(volumes)+len(claims) > 0 {
		t.Error("it still has what was taken")
	}
}

func TestALedgerNotesWhichRequestServesWhichContainer(t *testing.T) {
	l := &supply.Ledger{}
	claim := fixture.DeviceClaim("c", "gpu", 1)
	for _, write := range []func(context.Context, *resourcev1.ResourceClaim, metav1.UpdateOptions) (*resourcev1.ResourceClaim, error){
		l.ResourceV1().ResourceClaims("any").Update, l.ResourceV1().ResourceClaims("any").UpdateStatus} {
		if got, err := write(t.Context(), claim, metav1.UpdateOptions{}); err != nil || got != claim {
			t.Errorf("the claim is answered by %v, %v", got, err)
		}
	}
	patch := `{"status": {"extendedResourceClaimStatus": {"requestMappings": [{"containerName": "main", "requestName": "r"}]}}}`
	if _, err := l.CoreV1().Pods("any").Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	requests, err := l.TakeRequests()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]corev1.ContainerExtendedResourceRequest{{ContainerName: "main", RequestName: "r"}}, requests); diff != "" {
		t.Error(diff)
	}
	if _, err := l.TakeRequests(); err == nil {
		t.Error("nobody says that nothing was written")
	}
}

func TestOfTheClassesForAResourceTheNewestIsTakenWheneverItCame(t *testing.T) {
	old, recent := fixture.Devices("old"), fixture.Devices("recent")
	for _, class := range []*resourcev1.DeviceClass{old, recent} {
		class.Spec.ExtendedResourceName = new("example.com/gpu")
	}
	recent.CreationTimestamp.Time = fixture.Birth.Add(time.Hour)
	for _, order := range [][]*resourcev1.DeviceClass{{old, recent}, {recent, old}} {
		c := cache.New(cache.Options{})
		s := supply.NewShelf(c.Cluster, informers.NewSharedInformerFactory(nil, 0))
		for _, class := range order {
			c.Apply(cache.Set{Object: class})
			s.Follow()
			s.Devices().DeviceClassResolver()
		}
		if got := s.Devices().DeviceClassResolver().GetDeviceClass("example.com/gpu"); got != recent {
			t.Errorf("taken is %s", got.Name)
		}
		c.Apply(cache.Delete{Object: recent})
		s.Follow()
		if got := s.Devices().DeviceClassResolver().GetDeviceClass("example.com/gpu"); got != old {
			t.Errorf("without it taken is %v", got)
		}
	}
}

func TestAClaimThatIsMadeForAPodHasANameThatCanBe(t *testing.T) {
	s := supply.NewShelf(cache.New(cache.Options{}).Cluster, informers.NewSharedInformerFactory(nil, 0))
	s.Follow()
	named := map[string]bool{}
	for _, name := range []string{"p", strings.Repeat("a", 253), strings.Repeat("a", 224) + "." + strings.Repeat("b", 20)} {
		pod := fixture.Pod(name)
		s.Devices().Ask(pod)
		all, err := s.Devices().List()
		if err != nil || len(all) != 1 || !supply.IsMade(all[0]) || !metav1.IsControlledBy(all[0], pod) {
			t.Fatalf("the claims are %v: %v", all, err)
		}
		if problems := validation.IsDNS1123Subdomain(all[0].Name); len(problems) > 0 || named[all[0].Name] {
			t.Errorf("the claim for pod %s is named %s: %v", name, all[0].Name, problems)
		}
		named[all[0].Name] = true
	}
}
