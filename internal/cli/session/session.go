package session

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubeconfigs may name
	"k8s.io/client-go/rest"
	"k8s.io/component-base/logs"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/version"
	"hekla.sh/hekla/pkg/apis"
)

// Session is one execution of a program: where it writes, the cluster that it is about, and the flags that most verbs
// share.
type Session struct {
	genericiooptions.IOStreams
	// Program is how a person starts the verbs, for sentences that say what to type next.
	Program string
	// IsVolcano makes defaults those of vcctl where they differ from kubectl's.
	IsVolcano  bool
	Scheme     *runtime.Scheme
	connection *genericclioptions.ConfigFlags
	// DefaultNamespace is in force where the program has no other; "" leaves it to the rule.
	DefaultNamespace string

	Name          string
	namespaceFlag string
	AllNamespaces bool
	dryRun        string
	Output        *Output // of the verb that runs
	told          told
}

// New returns a session of a program. Under Volcano's names it has the defaults of vcctl.
func New(program string, isVolcano bool, streams genericiooptions.IOStreams) *Session {
	scheme := runtime.NewScheme()
	// Neither can fail: the types are the same in every execution, and the tests register them.
	_ = clientgoscheme.AddToScheme(scheme)
	_ = apis.AddToScheme(scheme)
	return &Session{
		IOStreams: streams, Program: program, IsVolcano: isVolcano, Scheme: scheme, connection: genericclioptions.NewConfigFlags(true),
	}
}

// rareConnectionFlags are there as in kubectl, and left out of the help so that the verb's own flags can be seen.
var rareConnectionFlags = []string{"as-uid", "as-user-extra", "certificate-authority", "client-certificate", "client-key", "disable-compression",
	"insecure-skip-tls-verify", "tls-server-name", "token"}

// AddConnectionFlags adds what says which cluster is meant, and as whom it is asked.
func (s *Session) AddConnectionFlags(flags *pflag.FlagSet) {
	c := s.connection
	kubeconfig, master := c.KubeConfig, c.APIServer
	c.KubeConfig, c.APIServer, c.Namespace, c.CacheDir = nil, nil, nil, nil // no flags; the first two get those of vcctl
	c.AddFlags(flags)
	c.KubeConfig, c.APIServer = kubeconfig, master
	for _, name := range rareConnectionFlags {
		_ = flags.MarkHidden(name)
	}
	flags.StringVarP(kubeconfig, "kubeconfig", "k", "", "path of the kubeconfig")
	flags.StringVarP(master, "master", "s", "", "address of the API server (also --server)")
}

// AddLogFlags adds what says how much the libraries log, such as the requests that are sent: -v, --vmodule and
// --log-flush-frequency, as vcctl and kubectl have them.
func AddLogFlags(command *cobra.Command) {
	logs.AddFlags(command.PersistentFlags())
	command.PersistentPreRun = func(*cobra.Command, []string) { logs.InitLogs() }
}

// synonyms are flags that have another name in a sibling verb of vcctl, or in kubectl.
var synonyms = map[string]string{"server": "master", "file": "filename", "format": "output"}

// AddSynonyms lets the flags of a command be given by their other names, and with underscores, as vcctl does.
func AddSynonyms(command *cobra.Command) {
	command.SetGlobalNormalizationFunc(func(flags *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if synonym, ok := synonyms[name]; ok {
			name = synonym
		}
		return pflag.NormalizedName(name)
	})
}

// Shorthands are those letters that the Slurm-like programs swap.
type Shorthands struct{ namespace, Name string }

var (
	VcctlShorthands = Shorthands{namespace: "n", Name: "N"}
	SlurmShorthands = Shorthands{namespace: "N", Name: "n"}
)

// AddNamespaceFlag adds the flag for the namespace of the objects.
func (s *Session) AddNamespaceFlag(command *cobra.Command, letters Shorthands) {
	usage := "namespace; without it that of the kubeconfig's context"
	if s.IsVolcano {
		usage = `namespace; without it "default"`
	}
	command.Flags().StringVarP(&s.namespaceFlag, "namespace", letters.namespace, "", usage)
}

// AddAllNamespacesFlag adds the flag that lists the objects of all namespaces.
func (s *Session) AddAllNamespacesFlag(command *cobra.Command) {
	command.Flags().BoolVarP(&s.AllNamespaces, "all-namespaces", "A", false, "in all namespaces")
}

// AddNameFlag adds the flag by which vcctl takes the name that may be an argument as well.
func (s *Session) AddNameFlag(command *cobra.Command, letter, usage string) {
	command.Flags().StringVarP(&s.Name, "name", letter, "", usage)
}

// AddDryRunFlag adds the flag with which nothing is changed.
func (s *Session) AddDryRunFlag(command *cobra.Command) {
	command.Flags().StringVar(&s.dryRun, "dry-run", "none", "none, client (nothing is sent) or server (everything is checked, nothing is kept)")
	command.Flags().Lookup("dry-run").NoOptDefVal = "client"
}

// Namespace is the one that is meant.
func (s *Session) Namespace() (string, error) {
	if s.namespaceFlag != "" {
		return s.namespaceFlag, nil
	}
	if s.IsVolcano {
		return cmp.Or(s.DefaultNamespace, metav1.NamespaceDefault), nil
	}
	namespace, _, err := s.connection.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", s.Explain(err)
	}
	return namespace, nil
}

// Scope is the namespace to list, "" for all.
func (s *Session) Scope() (string, error) {
	if s.AllNamespaces {
		return "", nil
	}
	return s.Namespace()
}

// Names are the objects that are meant, at least one.
func (s *Session) Names(kind string, arguments []string) ([]string, error) {
	switch {
	case s.Name != "" && len(arguments) > 0:
		return nil, fmt.Errorf("--name=%s and the argument %s both name a %s; give one of them", s.Name, arguments[0], kind)
	case s.Name != "":
		return []string{s.Name}, nil
	case len(arguments) == 0:
		return nil, fmt.Errorf("which %s? Give its name; %q lists them", kind, s.Program+" "+kind+" list")
	}
	return arguments, nil
}

// KindFor is the kind that a user means by a type, as kubectl understands it: job, jobs, rayclusters.ray.io, vj.
func (s *Session) KindFor(text string) (kind schema.GroupVersionKind, isNamespaced bool, err error) {
	mapper, err := s.connection.ToRESTMapper()
	if err != nil {
		return kind, false, s.Explain(err)
	}
	whole, short := schema.ParseResourceArg(strings.ToLower(text))
	if whole != nil {
		kind, _ = mapper.KindFor(*whole)
	}
	if kind.Empty() {
		if kind, err = mapper.KindFor(short.WithVersion("")); err != nil {
			return kind, false, s.Explain(err)
		}
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return kind, false, s.Explain(err)
	}
	return kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// RESTConfig is how the API server is reached.
func (s *Session) RESTConfig() (*rest.Config, error) {
	config, err := s.connection.ToRESTConfig()
	if err != nil {
		return nil, s.Explain(err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "hekla/" + version.Version
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &telling{next, s.ErrOut, &s.told} })
	return config, nil
}

// Client reaches the API server. What is written is checked strictly: an unknown field is refused.
func (s *Session) Client() (client.WithWatch, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: s.Scheme})
	if err != nil {
		return nil, s.Explain(err)
	}
	return api, nil
}

// Write carries out one request that changes something, unless it is a dry run, and tells of it: with the object in the
// format that was asked for, else with a sentence.
func (s *Session) Write(object client.Object, done string, request func(client.Client) error) error {
	switch s.dryRun {
	case "client":
		done += " (dry run)"
	case "", "none", "server":
		api, err := s.Client()
		if err != nil {
			return err
		}
		var writer client.Client = client.WithFieldValidation(api, metav1.FieldValidationStrict)
		if s.dryRun == "server" {
			writer = client.NewDryRunClient(writer)
			done += " (server dry run)"
		}
		if err := request(writer); err != nil {
			return s.Explain(err)
		}
	default:
		return fmt.Errorf("--dry-run=%s: it must be none, client or server", s.dryRun)
	}
	if s.Output.IsTable() {
		_, err := fmt.Fprintln(s.Out, done)
		return err
	}
	return s.Output.Print(s, object)
}

// Create creates an object.
func (s *Session) Create(ctx context.Context, object client.Object, done string) error {
	return s.Write(object, done, func(api client.Client) error { return api.Create(ctx, object) })
}

// Delete deletes an object of a kind by its name.
func (s *Session) Delete(ctx context.Context, object client.Object, done string) error {
	return s.Write(object, done, func(api client.Client) error { return api.Delete(ctx, object) })
}

// NewGroup returns the verbs about one kind of object.
func NewGroup(s *Session, use string, aliases []string, short string, verbs ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Aliases: aliases, Short: short, Args: cobra.NoArgs, RunE: ShowHelp}
	group.AddCommand(verbs...)
	if s.IsVolcano { // where each verb has them, and the program those of the log
		for _, verb := range verbs {
			s.AddConnectionFlags(verb.Flags())
		}
	} else {
		s.AddConnectionFlags(group.PersistentFlags())
		AddLogFlags(group)
	}
	AddSynonyms(group)
	return group
}

// ShowHelp is what a command does that needs a verb and got none.
func ShowHelp(command *cobra.Command, _ []string) error { return command.Help() }
