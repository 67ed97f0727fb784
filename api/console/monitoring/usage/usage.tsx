import { Link } from 'wouter'
import { Chart } from '../../kit/charts/chart.tsx'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Table } from '../../kit/tables/table.tsx'
import { formatMoney, ZONE } from '../../kit/time.tsx'
import { useTeam } from '../../shell/role.tsx'
import { type Period, useUsage } from '../data.ts'
import { Figures } from '../figures.tsx'
import { MODEL_PROVIDERS, useNodeUsage } from './data.ts'

const COMPACT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

export function formatCount(value: number): string {
  return value < 10_000 ? value.toLocaleString() : COMPACT.format(value)
}

/** Tokens and cost of a span: in all, by day, by model and by workflow. */
export function UsageView({ span }: { span: Period }) {
  const { teamId } = useTeam()
  const found = useUsage(teamId, span, ZONE)
  return (
    <Loaded query={found}>
      {({ total, days, models, workflows }) =>
        total.calls === 0 ? (
          <Empty
            title="No calls to models"
            text="Nodes such as LLM and AI_AGENT, chats, guardrails and evaluations that call a model are counted here. So are agents elsewhere that send their telemetry."
          />
        ) : (
          <div className="stack">
            <Figures
              figures={[
                ['Cost', formatMoney(total.totalCost), tellUnpriced(total.unpricedCalls)],
                ['Input tokens', formatCount(total.totalInputTokens), tellCached(total.totalCachedTokens)],
                ['Output tokens', formatCount(total.totalOutputTokens)],
                ['Calls', formatCount(total.calls), `${formatCount(total.executionCount)} executions`],
              ]}
            />
            <Chart
              label="Tokens by day"
              kind="bars"
              points={days.map(({ date }) => date)}
              formatPoint={formatDay}
              format={formatCount}
              series={[
                { name: 'Input', values: days.map((day) => day.inputTokens) },
                { name: 'Output', values: days.map((day) => day.outputTokens) },
              ]}
            />
            <Chart
              label="Cost by day"
              kind="line"
              points={days.map(({ date }) => date)}
              formatPoint={formatDay}
              format={formatMoney}
              series={[{ name: 'US dollars', values: days.map((day) => day.cost) }]}
            />
            <section>
              <h2>By model</h2>
              <Table
                label="Usage by model"
                rows={models}
                keyOf={({ provider, model }) => `${provider} ${model}`}
                columns={[
                  { heading: 'Model', cell: ({ model }) => <span className="name">{model}</span> },
                  { heading: 'Provider', cell: ({ provider }) => MODEL_PROVIDERS[provider] ?? provider },
                  ...AMOUNTS,
                ]}
              />
            </section>
            <section>
              <h2>By workflow</h2>
              <Table
                label="Usage by workflow"
                rows={workflows}
                keyOf={({ workflowId, workflowName }) => `${workflowId} ${workflowName}`}
                columns={[
                  {
                    heading: 'Workflow',
                    cell: (row) => <Whose {...row} />,
                  },
                  ...AMOUNTS,
                ]}
              />
            </section>
            <Nodes span={span} />
          </div>
        )
      }
    </Loaded>
  )
}

const MOST_NODES = 20

/** The nodes that cost most, of all workflows. */
function Nodes({ span }: { span: Period }) {
  const { teamId } = useTeam()
  const found = useNodeUsage(teamId, span)
  return (
    <Loaded query={found} rows={3}>
      {(nodes) =>
        nodes.length > 0 && (
          <section>
            <h2>By node{nodes.length > MOST_NODES && `: the ${MOST_NODES} that cost most`}</h2>
            <Table
              label="Usage by node"
              rows={nodes.slice(0, MOST_NODES)}
              keyOf={({ workflowId, nodeId }) => `${workflowId} ${nodeId}`}
              columns={[
                { heading: 'Node', cell: ({ nodeId }) => <code className="name">{nodeId}</code> },
                { heading: 'Workflow', cell: (row) => <Whose {...row} /> },
                ...AMOUNTS,
              ]}
            />
          </section>
        )
      }
    </Loaded>
  )
}

type WhoseProps = { workflowId: string | null; workflowName: string | null }

function Whose({ workflowId, workflowName }: WhoseProps) {
  if (!workflowId || !workflowName)
    return <span className="quiet">{workflowId ? 'Deleted' : 'Outside of executions'}</span>
  return (
    <Link className="name" href={`/workflows/${workflowId}`}>
      {workflowName}
    </Link>
  )
}

type Amounts = { inputTokens: number; outputTokens: number; cost: number | null; calls: number }

const AMOUNTS = [
  { heading: 'Input', number: true, cell: (row: Amounts) => formatCount(row.inputTokens) },
  { heading: 'Output', number: true, cell: (row: Amounts) => formatCount(row.outputTokens) },
  { heading: 'Calls', number: true, cell: (row: Amounts) => formatCount(row.calls) },
  { heading: 'Cost', number: true, cell: (row: Amounts) => formatMoney(row.cost) },
]

function tellUnpriced(calls: number): string | undefined {
  return calls > 0 ? `without ${formatCount(calls)} calls of unknown price` : undefined
}

function tellCached(tokens: number): string | undefined {
  return tokens > 0 ? `${formatCount(tokens)} of them cached` : undefined
}

function formatDay(date: string): string {
  return new Date(`${date}T12:00:00Z`).toLocaleDateString(undefined, { month: 'short', day: 'numeric' })
}
