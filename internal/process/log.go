package process

import (
	"fmt"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Log returns a log of one JSON object per line on standard error, which is that of the libraries too. Verbosity counts
// as everywhere in Kubernetes.
func Log(verbosity int) (logr.Logger, error) {
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
		return logr.Logger{}, fmt.Errorf("opening the log: %w", err)
	}
	logger := zapr.NewLogger(built)
	klog.SetLogger(logger)
	// klog has a level of its own.
	if err := new(klog.Level).Set(strconv.Itoa(verbosity)); err != nil {
		return logr.Logger{}, fmt.Errorf("--v=%d: %w", verbosity, err)
	}
	return logger, nil
}
