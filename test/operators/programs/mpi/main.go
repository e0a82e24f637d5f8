// Command mpi runs the controller of the MPI operator with gang scheduling by Volcano's PodGroups. The operator's own
// program is not run, because it serves its health on all interfaces, at a port that cannot be chosen.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	"github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	volcano "volcano.sh/apis/pkg/client/clientset/versioned"
)

func main() {
	kubeconfig := flag.Lookup("kubeconfig") // controller-runtime declares it
	flag.Parse()
	if err := run(kubeconfig.Value.String()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	jobs, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	groups, err := volcano.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := v2beta1.AddToScheme(scheme.Scheme); err != nil { // for its Events
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	ofCore, ofJobs := informers.NewSharedInformerFactory(core, 0), externalversions.NewSharedInformerFactory(jobs, 0)
	c, err := controller.NewMPIJobController(ctx, core, jobs, groups, nil, ofCore.Core().V1().ConfigMaps(), ofCore.Core().V1().Secrets(), ofCore.Core().V1().Services(),
		ofCore.Batch().V1().Jobs(), ofCore.Core().V1().Pods(), ofCore.Scheduling().V1().PriorityClasses(), ofJobs.Kubeflow().V2beta1().MPIJobs(),
		&options.ServerOption{GangSchedulingName: options.GangSchedulerVolcano, ControllerRateLimit: 10, ControllerBurst: 100})
	if err != nil {
		return err
	}
	ofCore.Start(ctx.Done())
	ofJobs.Start(ctx.Done())
	c.PodGroupCtrl.StartInformerFactory(ctx.Done())
	return c.Run(2, ctx.Done())
}
