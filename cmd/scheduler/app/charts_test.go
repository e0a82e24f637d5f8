package app

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"hekla.sh/hekla/internal/answers/charts"
)

// A ConfigMap for the charts that is missing or may not be used is logged once, and said on the page until it can be.
func TestThatChartsAreNotHandedOverIsSaid(t *testing.T) {
	saved := charts.New()
	saved.Add(charts.Sample{Time: time.Now(), Values: map[charts.Key]float64{{Measure: charts.Used, Resource: "cpu"}: 1}})
	packed, _, err := saved.Save()
	must(t, err)
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: chartsName}}
	full := empty.DeepCopy()
	full.BinaryData = map[string][]byte{chartsKey: packed}
	right := chartsRight(systemNamespace)
	for name, test := range map[string]struct {
		verb   string // that is forbidden at first
		there  *corev1.ConfigMap
		says   string
		mended string // what is said once the right and an empty ConfigMap are there
	}{
		"is missing":                   {"", nil, "not found; kubectl apply --server-side -f installer/hekla.yaml makes it", ""},
		"may not be read":              {"get", empty, right.Missing, ""},
		"may not be written":           {"update", empty, right.Missing, ""},
		"may not be read and has some": {"get", full, right.Missing, "is not overwritten before the scheduler starts again"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if test.there != nil {
				must(t, client.Tracker().Add(test.there.DeepCopy()))
			}
			isForbidden := test.verb != ""
			client.PrependReactor(cmp.Or(test.verb, "none"), "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return isForbidden, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), chartsName, errors.New("no rule"))
			})
			client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				asked := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
				of := asked.Spec.ResourceAttributes
				asked.Status.Allowed = !isForbidden || of.Verb != test.verb || of.Namespace != systemNamespace || of.Resource != "configmaps" || of.Name != chartsName
				return true, asked, nil
			})
			var logged []string
			c := &chartist{store: charts.New(), saved: client.CoreV1().ConfigMaps(systemNamespace), right: right, reviews: client.AuthorizationV1(),
				logger: funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{})}
			c.restore(t.Context())
			if said := c.store.Problem(); !strings.Contains(said, test.says) {
				t.Errorf("before it is saved the page says %q, want %q in it", said, test.says)
			}
			for range 3 {
				c.save(t.Context())
			}
			if said := c.store.Chart("", "hours", time.Now()).Problem; !strings.Contains(said, test.says) || said != c.store.Problem() {
				t.Errorf("the page says %q, want %q in it", said, test.says)
			}
			if len(logged) != 1 || !strings.Contains(logged[0], test.says) || !strings.Contains(logged[0], chartsName) {
				t.Errorf("it is logged %q, want one line", logged)
			}
			if isForbidden = false; test.there == nil {
				must(t, client.Tracker().Add(empty.DeepCopy()))
			}
			c.save(t.Context())
			if said := c.store.Problem(); (said == "") != (test.mended == "") || !strings.Contains(said, test.mended) {
				t.Errorf("then the page says %q, want %q in it", said, test.mended)
			}
			now, err := client.CoreV1().ConfigMaps(systemNamespace).Get(context.Background(), chartsName, metav1.GetOptions{})
			must(t, err)
			if got := string(now.BinaryData[chartsKey]); got == "" || (got == string(packed)) != (test.mended != "") {
				t.Errorf("%d bytes are saved, those from before: %t", len(got), got == string(packed))
			}
		})
	}
}
