// Command training runs the controller of PyTorchJobs of the training-operator with gang scheduling by Volcano's
// PodGroups. The operator's own program is not run, because it serves webhooks on all interfaces and keeps their
// certificates in a folder that cannot be chosen.
package main

import (
	"flag"
	"fmt"
	"os"

	v1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	settings "github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcano "volcano.sh/apis/pkg/client/clientset/versioned"
)

func main() {
	health := flag.String("health-probe-bind-address", "", "where its health is served")
	flag.Parse()
	if err := run(*health); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(health string) error {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(known); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	groups, err := volcano.NewForConfig(config)
	if err != nil {
		return err
	}
	settings.Config.PyTorchInitContainerImage = settings.PyTorchInitContainerImageDefault
	settings.Config.PyTorchInitContainerTemplateFile = settings.PyTorchInitContainerTemplateFileDefault
	settings.Config.PyTorchInitContainerMaxTries = settings.PyTorchInitContainerMaxTriesDefault
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: known, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: health})
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	if err := controllers.SupportedSchemeReconciler[v1.PyTorchJobKind](manager, common.GenVolcanoSetupFunc(groups), 1); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
