// Draws one dashboard: its JSON, `board`, from answers of Prometheus by expression, `over` the time
// from `since` to `until`, in seconds, and `at_end`.
// Grafana's server does what stands here (its panel plugins are not in its packages); what is seen
// (axes, units, legends, thresholds, tiles, tables of values) is drawn by @grafana/ui.
import { createRoot } from "react-dom/client";
import {
  EventBusSrv,
  FieldType,
  ThemeContext,
  createTheme,
  dateTime,
  getDisplayProcessor,
  getDisplayValueAlignmentFactors,
  getFieldDisplayName,
  getFieldDisplayValues,
  getMinMaxAndDelta,
  toDataFrame,
} from "@grafana/data";
import { BarGauge, BigValue, GlobalStyles, PanelContextProvider, TimeSeries, VizRepeater } from "@grafana/ui";

const WIDTH = 1500;
const CELL = { width: WIDTH / 24, height: 38, gap: 8 };
const HEADER = 30;
const LINES = { drawStyle: "line", lineWidth: 1, showPoints: "auto", pointSize: 5, spanNulls: false };
const theme = createTheme({ colors: { mode: "dark" } });

/** One frame for each series, as the data source for Prometheus makes them. */
function framesOf(panel, answers) {
  const frames = [];
  for (const target of panel.targets) {
    for (const series of (target.instant ? answers.at_end : answers.over)[target.expr] ?? []) {
      const name = target.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, label) => series.metric[label] ?? "");
      const points = series.values ?? [series.value];
      frames.push(
        toDataFrame({
          refId: target.refId,
          fields: [
            { name: "Time", type: FieldType.time, values: points.map(([at]) => at * 1000), config: {} },
            {
              name: "Value",
              type: FieldType.number,
              values: points.map(([, value]) => (value === "NaN" ? null : Number(value))),
              labels: series.metric,
              config: { displayNameFromDS: name },
            },
          ],
        }),
      );
    }
  }
  return frames;
}

/** Puts the panel's settings into the fields, and after them those of its overrides. */
function configure(panel, frames) {
  const { defaults, overrides = [] } = panel.fieldConfig;
  frames.forEach((frame, seriesIndex) => {
    const [time, field] = frame.fields;
    time.display = getDisplayProcessor({ field: time, theme });
    field.config = {
      color: { mode: panel.type === "timeseries" ? "palette-classic" : "thresholds" },
      thresholds: { mode: "absolute", steps: [{ value: null, color: "green" }] },
      ...defaults,
      ...field.config,
      custom: { ...LINES, ...defaults.custom },
    };
    // Grafana reads the first step of JSON, null, as minus infinity.
    const { thresholds } = field.config;
    field.config.thresholds = {
      ...thresholds,
      steps: thresholds.steps.map((step) => ({ ...step, value: step.value ?? -Infinity })),
    };
    field.state = { seriesIndex, range: getMinMaxAndDelta(field) };
    const name = getFieldDisplayName(field, frame, frames);
    for (const { matcher, properties } of overrides) {
      if (matcher.id !== "byName" || matcher.options !== name) continue;
      for (const { id, value } of properties) {
        if (id.startsWith("custom.")) field.config.custom[id.slice("custom.".length)] = value;
        else field.config[id] = value;
      }
    }
    field.display = getDisplayProcessor({ field, theme });
  });
  if (panel.type === "bargauge") {
    const most = Math.max(...frames.map(({ fields }) => fields[1].state.range.max));
    for (const { fields } of frames) fields[1].state.range.max = most;
  }
  return frames;
}

function Lines({ panel, frames, range, width, height }) {
  return (
    <TimeSeries
      frames={frames}
      structureRev={1}
      legend={panel.options.legend}
      options={panel.options}
      timeRange={range}
      timeZone="utc"
      width={width}
      height={height}
    />
  );
}

/** The tiles of a stat panel, and the bars of a bar gauge. */
function Values({ panel, frames, width, height }) {
  const options = panel.options ?? {};
  const values = () =>
    getFieldDisplayValues({
      fieldConfig: panel.fieldConfig,
      reduceOptions: { values: false, calcs: ["lastNotNull"], ...options.reduceOptions },
      replaceVariables: (text) => text,
      theme,
      data: frames,
      sparkline: options.graphMode === "area",
      timeZone: "utc",
    });
  const draw = ({ value, width, height, orientation, alignmentFactors }) =>
    panel.type === "bargauge" ? (
      <BarGauge
        value={value.display}
        field={value.field}
        display={value.view?.getFieldDisplayProcessor(value.colIndex)}
        width={width}
        height={height}
        orientation={orientation}
        alignmentFactors={alignmentFactors}
        displayMode={options.displayMode}
        showUnfilled={options.showUnfilled}
        valueDisplayMode={options.valueMode}
        text={options.text}
        theme={theme}
      />
    ) : (
      <BigValue
        value={value.display}
        sparkline={value.sparkline}
        width={width}
        height={height}
        alignmentFactors={alignmentFactors}
        colorMode={options.colorMode}
        graphMode={options.graphMode}
        justifyMode={options.justifyMode}
        textMode={options.textMode}
        text={options.text}
        theme={theme}
      />
    );
  return (
    <VizRepeater
      getValues={values}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={draw}
      source={frames}
      width={width}
      height={height}
      itemSpacing={6}
      orientation={options.orientation ?? "auto"}
    />
  );
}

function Body(props) {
  const { panel, frames, width, height } = props;
  if (!frames.length) {
    return <div className="empty" style={{ width, height }}>No data</div>;
  }
  return panel.type === "timeseries" ? <Lines {...props} /> : <Values {...props} />;
}

function Panel({ panel, answers, range }) {
  const { x, y, w, h } = panel.gridPos;
  const place = {
    position: "absolute",
    left: x * CELL.width,
    top: y * CELL.height,
    width: w * CELL.width - CELL.gap,
    height: h * CELL.height - CELL.gap,
    boxSizing: "border-box",
  };
  if (panel.type === "row") {
    return <div style={{ ...place, padding: "4px 2px", fontSize: 17 }}>⌄ {panel.title}</div>;
  }
  const frames = configure(panel, framesOf(panel, answers));
  const empty = !frames.some(({ fields }) => fields[1].values.some((value) => value !== null));
  return (
    <div className="panel" style={place} data-panel={panel.title} data-empty={empty}>
      <div className="title" title={panel.description}>{panel.title} <span>i</span></div>
      <div style={{ padding: "0 8px" }}>
        <Body panel={panel} frames={frames} range={range} width={place.width - 18} height={place.height - HEADER - 8} />
      </div>
    </div>
  );
}

function Board({ board, since, until, ...answers }) {
  const range = { from: dateTime(since * 1000), to: dateTime(until * 1000), raw: { from: "", to: "" } };
  const rows = Math.max(...board.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const events = new EventBusSrv();
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <style>{`
        body { margin: 0; background: ${theme.colors.background.canvas}; }
        #board { width: ${WIDTH}px; padding: 12px; }
        .panel { background: ${theme.colors.background.primary}; border: 1px solid ${theme.colors.border.weak}; border-radius: 2px; }
        .title { font-size: 14px; font-weight: 500; padding: 6px 8px 0; height: ${HEADER}px; box-sizing: border-box; white-space: nowrap; overflow: hidden; }
        .title span { display: inline-block; width: 13px; height: 13px; margin-left: 4px; border: 1px solid; border-radius: 7px; font-size: 10px; line-height: 13px; text-align: center; color: ${theme.colors.text.secondary}; }
        .empty { display: flex; align-items: center; justify-content: center; color: ${theme.colors.text.secondary}; }
      `}</style>
      <h1 style={{ fontSize: 21, margin: "0 0 10px" }}>{board.title}</h1>
      <PanelContextProvider value={{ eventsScope: "global", eventBus: events }}>
        <div style={{ position: "relative", height: rows * CELL.height }}>
          {board.panels.map((panel) => (
            <Panel key={panel.id} panel={panel} answers={answers} range={range} />
          ))}
        </div>
      </PanelContextProvider>
    </ThemeContext.Provider>
  );
}

window.addEventListener("error", ({ message }) => {
  window.failed ??= message;
});
window.draw = (drawn) => createRoot(document.getElementById("board")).render(<Board {...drawn} />);
