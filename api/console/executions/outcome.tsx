import { Files } from './detail/files.tsx'
import { Value } from './detail/value.tsx'
import type { Run } from './live.ts'

/** What the execution as a whole was given, and what it gave. */
export function Outcome({ run }: { run: Run }) {
  if (run.hidden) {
    return (
      <p className="hint">
        A private chat: its owner and ADMINs see what went into the nodes and came out of them.
      </p>
    )
  }
  const name = `execution-${run.id.slice(-12)}`
  return (
    <section className="outcome" aria-label="Data">
      <h2>Data of the execution</h2>
      <div>
        <Value label="Input of the execution" value={run.inputData} root="$trigger" file={`${name}-input`} />
        {run.outputData !== null && (
          <Value label="Output of the execution" value={run.outputData} file={`${name}-output`} />
        )}
      </div>
      <Files executionId={run.id} values={[run.outputData, run.inputData]} />
    </section>
  )
}
