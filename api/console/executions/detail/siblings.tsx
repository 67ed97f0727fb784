import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import type { RecordState } from '../records.ts'

type SiblingProps = {
  records: readonly RecordState[]
  record: RecordState
  onChoose: (record: RecordState) => void
}

/** The same node in the other iterations. */
export function Siblings({ records, record, onChoose }: SiblingProps) {
  const [failedOnly, setFailedOnly] = useState(false)
  const failed = records.filter(({ status }) => status === 'FAILED')
  const among = failedOnly ? failed : records
  const at = among.findIndex(({ iteration }) => iteration === record.iteration)
  const go = (to: number) => {
    const next = among[to]
    if (next) onChoose(next)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is laid out in its own way
    <div className="row" role="group" aria-label="Iterations of this node">
      <Button
        small
        icon="back"
        aria-label="Iteration before"
        onClick={() => go(at < 0 ? among.length - 1 : at - 1)}
        disabled={at === 0}
      />
      <span className="quiet">
        {at < 0 ? '–' : (at + 1).toLocaleString()} of {among.length.toLocaleString()}
        {failedOnly ? ' failed' : ''}
      </span>
      <Button
        small
        icon="right"
        aria-label="Next iteration"
        onClick={() => go(at + 1)}
        disabled={at === among.length - 1}
      />
      {failed.length > 0 && (
        <Button
          small
          look="plain"
          aria-pressed={failedOnly}
          onClick={() => {
            setFailedOnly(!failedOnly)
            if (!failedOnly && record.status !== 'FAILED') onChoose(failed[0]!)
          }}
        >
          Failed only ({failed.length})
        </Button>
      )}
    </div>
  )
}
