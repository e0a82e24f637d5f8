package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/cli/shares"
	"hekla.sh/hekla/internal/simulator/manifests"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func addConfigMapFlag(command *cobra.Command, configMap *string) {
	command.Flags().StringVar(configMap, "scheduler-configmap", "volcano-system/volcano-scheduler-configmap",
		"NAMESPACE/NAME of the configuration of the scheduler, which says whether guarantees are enforced")
}

// readShares returns what queues have of their guarantees. It returns nil where guarantees are not enforced, for vcctl,
// for other formats than tables, and for users who may not read the configuration of the scheduler.
func readShares(ctx context.Context, s *session.Session, configMap string) (*shares.Shares, error) {
	if s.IsVolcano || !s.Output.IsTable() {
		return nil, nil
	}
	namespace, name, found := strings.Cut(configMap, "/")
	if !found || namespace == "" || name == "" {
		return nil, fmt.Errorf("--scheduler-configmap=%s: it must be NAMESPACE/NAME", configMap)
	}
	api, err := s.Client()
	if err != nil {
		return nil, err
	}
	configuration := &corev1.ConfigMap{}
	err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, configuration)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Explain(err)
	}
	queues := &scheduling.QueueList{}
	if err := api.List(ctx, queues); err != nil {
		return nil, s.Explain(err)
	}
	guaranteed, err := shares.New(configuration.Data[manifests.ConfigurationKey], queues.Items)
	if err != nil {
		// The scheduler says what is wrong with it. Queues are listed all the same.
		_, err = fmt.Fprintf(s.ErrOut, "What is left of guarantees is not shown: %s\n", err)
		return nil, err
	}
	return guaranteed, nil
}

// shareColumns are the columns about guarantees, none where they are not enforced.
func shareColumns(guaranteed *shares.Shares) []session.Column[*scheduling.Queue] {
	if guaranteed == nil {
		return nil
	}
	column := func(title string, amounts func(name string) corev1.ResourceList) session.Column[*scheduling.Queue] {
		return session.Column[*scheduling.Queue]{Title: title, Cell: func(q *scheduling.Queue) string {
			guaranteed.Note(q)
			return session.Amounts(amounts(q.Name))
		}}
	}
	return []session.Column[*scheduling.Queue]{column("Guaranteed", guaranteed.Guaranteed), column("Remaining", guaranteed.Remaining)}
}

// explainShares prints what the rules of guaranteed shares go by for one queue.
func explainShares(s *session.Session, guaranteed *shares.Shares, name string) error {
	e, isInside := guaranteed.Explain(name)
	if !isInside || name == e.Top {
		return nil
	}
	out := printers.GetNewTabWriter(s.Out)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = printers.EscapeTerminal(session.OrNone(cells[i]))
		}
		_, _ = fmt.Fprintln(out, strings.Join(cells, "\t")) // Flush reports what goes wrong
	}
	_, _ = fmt.Fprintln(out)
	row("Resource", "Guaranteed", "To", "Held", "Remaining", "Preemptable")
	for _, a := range e.Amounts {
		row(a.Resource, a.Guaranteed, a.By, a.Held, a.Remaining, a.Preemptable)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	row("Setting", "Value", "From")
	for _, setting := range e.Settings {
		row(setting.Name, setting.Value, setting.From)
	}
	return out.Flush()
}
