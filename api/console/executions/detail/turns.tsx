import { StatusSign } from '../../kit/status.tsx'
import { formatDuration, formatMoney } from '../../kit/time.tsx'
import type { Run } from '../live.ts'
import type { RecordState } from '../records.ts'

type TurnsProps = { steps: readonly RecordState[]; run: Run; onChoose: (record: RecordState) => void }

/** The turns of an agent's model and the tools that it called, with what each took. */
export function Turns({ steps, run, onChoose }: TurnsProps) {
  const values = new Map(run.nodeExecutions.map((one) => [one.id, one]))
  return (
    <section aria-label="Steps of the agent">
      <h3>Steps of the agent</h3>
      <ol className="agent-steps">
        {steps.map((step) => {
          const usage = values.get(step.id)?.usage
          return (
            <li key={step.id}>
              <button type="button" onClick={() => onChoose(step)}>
                <StatusSign status={step.status} />
                <span className="name">{step.tool === null ? 'The model' : `The tool ${step.tool}`}</span>
                <span className="quiet">
                  {usage &&
                    `${(usage.inputTokens + usage.outputTokens).toLocaleString()} tokens, ${usage.cost === null ? 'cost not known' : formatMoney(usage.cost)}`}
                </span>
                <span>{formatDuration(step.durationMs)}</span>
              </button>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
