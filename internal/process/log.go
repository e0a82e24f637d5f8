package process

import (
	"fmt"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// The formats of a log. AutomaticFormat is text on a terminal, and JSON elsewhere.
const (
	AutomaticFormat = "auto"
	TextFormat      = "text"
	JSONFormat      = "json"
)

// LogFormatUsage and VerbosityUsage are what the flags --log-format and --v say of themselves.
const (
	LogFormatUsage = "Format of the log: text, json (one object in each line), or auto: text on a terminal, json elsewhere."
	VerbosityUsage = "How much to log: 0 what matters, up to 10 everything."
)

// mostOfLibraries is the highest level at which the libraries log. From 8 on they would log what is sent and received,
// and that has tokens and Secrets.
const mostOfLibraries = 7

// CheckLog says, flag by flag, what cannot be meant.
func CheckLog(verbosity int, format string) (problems []error) {
	if verbosity < 0 || verbosity > 10 {
		problems = append(problems, fmt.Errorf("--v=%d: must be from 0 to 10", verbosity))
	}
	if format != AutomaticFormat && format != TextFormat && format != JSONFormat {
		problems = append(problems, fmt.Errorf("--log-format=%s: must be text, json or auto", format))
	}
	return problems
}

// Log returns a log on standard error, which is that of the libraries too. Verbosity counts as everywhere in
// Kubernetes.
func Log(verbosity int, format string) (logr.Logger, error) {
	if format == AutomaticFormat {
		format = JSONFormat
		if term.IsTerminal(int(os.Stderr.Fd())) {
			format = TextFormat
		}
	}
	logger, err := newLogger(verbosity, format)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("opening the log: %w", err)
	}
	ofLibraries, err := newLogger(min(verbosity, mostOfLibraries), format)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("opening the log: %w", err)
	}
	klog.SetLogger(ofLibraries)
	// klog has a level of its own.
	if err := new(klog.Level).Set(strconv.Itoa(min(verbosity, mostOfLibraries))); err != nil {
		return logr.Logger{}, fmt.Errorf("--v=%d: %w", verbosity, err)
	}
	return logger, nil
}

func newLogger(verbosity int, format string) (logr.Logger, error) {
	if format == TextFormat {
		return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity), textlogger.Output(os.Stderr))), nil
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zapcore.Level(-verbosity))
	config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.OutputPaths, config.ErrorOutputPaths = []string{"stderr"}, []string{"stderr"}
	// A log that drops lines is of no use on the day it is needed, and there are few.
	config.Sampling = nil
	// The message and its values say where it went wrong, and what breaks brings its own stack; one through a work
	// queue says nothing.
	config.DisableStacktrace = true
	built, err := config.Build()
	if err != nil {
		return logr.Logger{}, err
	}
	return zapr.NewLogger(built), nil
}
