package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/client/definitions"
)

// changeHyperNodes patches the definition of HyperNodes.
func changeHyperNodes(t *testing.T, patch string) {
	t.Helper()
	object := definitions.Object(topology.GroupVersion.WithResource("hypernodes"))
	if err := api.Patch(apitest.Context(t), object, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// A definition of an older version, or another's, drops what users write, or takes no status. It is said in the log,
// and in an Event on the definition, by controllers that start later and by those that run.
func TestADefinitionOfAnotherVersionIsTold(t *testing.T) {
	asks, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	if dropped, err := definitions.Dropped(asks); err != nil || len(dropped) > 0 {
		t.Fatalf("Hekla's own definitions drop %v (error %v)", dropped, err)
	}
	type notice struct {
		resource string
		fields   []string
	}
	told := make(chan notice, 100)
	go definitions.WatchFields(apitest.Context(t), asks, poll, func(r schema.GroupVersionResource, fields []string) { told <- notice{definitions.Name(r), fields} })

	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tierName"
	defer func() { // before the context of the test ends
		changeHyperNodes(t, `[{"op":"add","path":"`+field+`","value":{"type":"string","maxLength":253}},{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}]`)
		apitest.Eventually(t, func(context.Context) error {
			dropped, err := definitions.Dropped(asks)
			missing, problem := definitions.WithoutStatus(asks, definitions.Written)
			if err = errors.Join(err, problem); err == nil && len(dropped)+len(missing) > 0 {
				err = fmt.Errorf("still %v and %v", dropped, missing)
			}
			return err
		})
	}()
	changeHyperNodes(t, `[{"op":"remove","path":"`+field+`"},{"op":"remove","path":"/spec/versions/0/subresources"}]`)
	select {
	case got := <-told:
		if got.resource != "hypernodes.topology.volcano.sh" || !slices.Equal(got.fields, []string{"spec.tierName"}) {
			t.Errorf("told is %+v", got)
		}
	case <-time.After(patience):
		t.Fatal("those that run do not say it")
	}
	apitest.Eventually(t, func(context.Context) error {
		missing, err := definitions.WithoutStatus(asks, definitions.Written)
		if err == nil && len(missing) == 0 {
			err = errors.New("the subresource is still there")
		}
		return err
	})

	late := startLate(t)
	for _, want := range []struct{ reason, message string }{
		{definitions.DroppedReason, "spec.tierName is dropped"}, {definitions.Reason, "has no subresource status"},
	} {
		apitest.Eventually(t, func(ctx context.Context) error {
			list := &corev1.EventList{}
			if err := api.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
				return err
			}
			for _, event := range list.Items {
				if event.InvolvedObject.Kind == "CustomResourceDefinition" && event.InvolvedObject.Name == "hypernodes.topology.volcano.sh" &&
					event.Reason == want.reason && event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, want.message) {
					return nil
				}
			}
			return fmt.Errorf("no Event with the reason %s among %d", want.reason, len(list.Items))
		})
	}
	if len(told) > 0 {
		t.Errorf("it is told again while nothing has changed: %+v", <-told)
	}
	if !late.IsAlive() {
		t.Error("controllers that start with such a definition end")
	}
}

// Where the definition of queues takes no status, their states are written into the queues: else none could be closed.
func TestAQueueIsOpenedAndClosedWhereItsStatusIsNoSubresource(t *testing.T) {
	asks, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := scheduling.GroupVersion.WithResource("queues")
	change := func(patch string, isMissing bool) {
		t.Helper()
		if err := api.Patch(apitest.Context(t), definitions.Object(resource), client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, func(context.Context) error {
			missing, err := definitions.WithoutStatus(asks, definitions.Written)
			if err == nil && slices.Contains(missing, resource) != isMissing {
				err = fmt.Errorf("these lack it: %v", missing)
			}
			return err
		})
	}
	change(`[{"op":"remove","path":"/spec/versions/0/subresources"}]`, true)
	defer change(`[{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}]`, false)
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "without-subresource"}, Spec: scheduling.QueueSpec{Weight: 1}}
	create(t, queue)
	defer func() { _ = api.Delete(context.Background(), queue) }()
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool { return queue.Status.State == scheduling.QueueStateOpen })
	create(t, &bus.Command{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "close-without-subresource"}, Action: string(bus.CloseQueueAction),
		TargetObject: metav1.NewControllerRef(queue, scheduling.GroupVersion.WithKind("Queue"))})
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool { return queue.Status.State == scheduling.QueueStateClosed })
}

// startLate starts controllers in addition to those that all tests share. They do nothing but what all do.
func startLate(t *testing.T) *localcluster.Process {
	t.Helper()
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	late := program
	late.Name, late.ReadyURL = "hekla-controllers-late", fmt.Sprintf("http://127.0.0.1:%d/readyz", port)
	late.Args = []string{program.Args[0], "--controllers=gc-controller", "--leader-elect=false", "--enable-healthz",
		fmt.Sprintf("--healthz-address=127.0.0.1:%d", port)}
	running, err := cluster.Run(apitest.Context(t), late)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Stop() })
	return running
}
