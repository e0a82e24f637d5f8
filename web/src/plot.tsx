import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { hour } from "./format";

/** Curve is one line of a plot. The color is the name of a property of the style. */
export interface Curve {
  title: string;
  color: string;
  dash?: number[];
  points: (number | null)[];
}

/** Plot draws curves over times in seconds. A point that is null is a gap. */
export function Plot({
  times,
  curves,
  label,
  write,
  time = (seconds) => hour(seconds * 1000),
  least,
}: {
  times: number[];
  curves: Curve[];
  label: string;
  write: (value: number) => string;
  time?: (seconds: number) => string;
  /** least is up to which value the axis goes at least. */
  least: number;
}) {
  const box = useRef<HTMLDivElement>(null),
    chart = useRef<uPlot>();
  const columns: uPlot.AlignedData = [times, ...curves.map((c) => c.points)];
  const shape = JSON.stringify([curves.map((c) => [c.title, c.color]), label]);
  useEffect(() => {
    const draw = () => {
      chart.current?.destroy();
      const style = getComputedStyle(document.documentElement),
        color = (name: string) => style.getPropertyValue(name).trim();
      const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
      chart.current = new uPlot(
        {
          width: box.current!.clientWidth,
          height: 180,
          legend: { show: false },
          cursor: { show: false },
          scales: { y: { range: (_u, _min, max) => [0, Math.max(least, (max || 0) * 1.1)] } },
          axes: [
            { ...axis, space: 90, values: (_u, at) => at.map(time) },
            { ...axis, size: 70, values: (_u, values) => values.map(write) },
          ],
          series: [
            {},
            ...curves.map((c) => ({
              label: c.title,
              stroke: color(c.color),
              width: 2,
              ...(c.dash ? { dash: c.dash } : {}),
              // A point between gaps has no line: it is drawn as one.
              points: { show: c.points.filter((p) => p !== null).length < 3 },
            })),
          ],
        },
        columns,
        box.current!,
      );
    };
    draw();
    const dark = matchMedia("(prefers-color-scheme: dark)"),
      watch = new ResizeObserver(() => chart.current?.setSize({ width: box.current!.clientWidth, height: 180 }));
    watch.observe(box.current!);
    dark.addEventListener("change", draw);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", draw);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [shape]);
  useEffect(() => chart.current?.setData(columns), [times, curves]);
  return <div ref={box} role="img" aria-label={label} />;
}
