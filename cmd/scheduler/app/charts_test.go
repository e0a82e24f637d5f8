package app

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
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
	for name, test := range map[string]struct {
		verb   string // that is forbidden at first
		there  *corev1.ConfigMap
		says   string
		mended string // what is said once the right and an empty ConfigMap are there
	}{
		"is missing":                   {"", nil, "not found", ""},
		"may not be read":              {"get", empty, "is forbidden", ""},
		"may not be written":           {"update", empty, "is forbidden", ""},
		"may not be read and has some": {"get", full, "is forbidden", "is not overwritten before the scheduler starts again"},
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
			var logged []string
			c := &chartist{store: charts.New(), saved: client.CoreV1().ConfigMaps(systemNamespace), logger: funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{})}
			c.restore(t.Context())
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
