package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/test/apitest"
)

func TestTheGroupIsDiscoveredWhileNoSchedulerLeads(t *testing.T) {
	w := onCluster(t)
	w.register()
	name := "standby-" + w.suffix
	lease := leaseOf(name, "another process", metav1.NowMicro())
	_, err := w.core.CoordinationV1().Leases(systemNamespace).Create(t.Context(), lease, metav1.CreateOptions{})
	must(t, err)
	renewing, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // the other process lives on
		for renewing.Err() == nil {
			if held, err := w.core.CoordinationV1().Leases(systemNamespace).Get(renewing, name, metav1.GetOptions{}); err == nil {
				now := metav1.NowMicro()
				held.Spec.RenewTime = &now
				_, _ = w.core.CoordinationV1().Leases(systemNamespace).Update(renewing, held, metav1.UpdateOptions{})
			}
			time.Sleep(time.Second)
		}
	}()
	w.start("--leader-elect=true", "--leader-elect-resource-name="+name, "--scheduler-name="+name, "--answers-address="+freeAddress(t),
		"--answers-service="+systemNamespace+"/"+publish.Service)
	apitest.Eventually(t, func(context.Context) error {
		list, err := w.core.Discovery().ServerResourcesForGroupVersion(api.GroupVersion.String())
		if err == nil && len(list.APIResources) != len(api.Resources) {
			err = fmt.Errorf("the resources are %v", list.APIResources)
		}
		return err
	})
	var answer api.Reply[api.Job]
	if err := askThrough(t.Context(), w.core, api.Jobs.Path("default", "x"), &answer); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("a question is answered with %v, want 503", err)
	}
}

func TestAnAddressIsPublishedInTheSliceOfItsKind(t *testing.T) {
	w := onCluster(t)
	w.register()
	slices := w.core.DiscoveryV1().EndpointSlices(systemNamespace)
	service := "slices-" + w.suffix
	for name, kind := range map[string]discoveryv1.AddressType{service: discoveryv1.AddressTypeIPv4, service + "-ipv6": discoveryv1.AddressTypeIPv6} {
		_, err := slices.Create(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: kind, Endpoints: []discoveryv1.Endpoint{}}, metav1.CreateOptions{})
		must(t, err)
	}
	for endpoint, want := range map[string]string{"[192.0.2.7]:8443": service + " 192.0.2.7", "192.0.2.8:8443": service + " 192.0.2.8", "[2001:db8::7]:8443": service + "-ipv6 2001:db8::7"} {
		for _, leads := range []bool{false, true} { // nothing answers there, so that it does not matter
			p, err := publish.New(w.core, publish.Options{Namespace: systemNamespace, Service: service, APIService: publish.APIService, Endpoint: endpoint, Port: 8443,
				Leads: func() bool { return leads }, Logger: logr.Discard()})
			must(t, err)
			ctx, stop := context.WithCancel(t.Context())
			go p.Run(ctx)
			name, address, _ := strings.Cut(want, " ")
			apitest.Eventually(t, func(ctx context.Context) error {
				slice, err := slices.Get(ctx, name, metav1.GetOptions{})
				if err == nil && (len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != address || *slice.Ports[0].Port != 8443) {
					err = errors.New("the slice has " + fmt.Sprint(slice.Endpoints, slice.Ports))
				}
				return err
			})
			stop()
		}
	}
}
