import './detail.css'
import { useEffect, useRef } from 'react'
import { JsonTree } from '../../kit/code/jsontree.tsx'
import { Button } from '../../kit/controls/button.tsx'
import { nameConstant, Pill, StatusBadge } from '../../kit/status.tsx'
import { useRecord } from '../records.ts'
import { Marks } from '../steps.tsx'
import { describeRecord, nameRecord } from '../tree.ts'
import { Content, type DetailProps } from './content.tsx'
import { Siblings } from './siblings.tsx'

/** All there is to know of one record: what it took and gave, each attempt, what it waits for. */
export function Detail(props: DetailProps) {
  const { run, tree, graph, nodeId, record, known, now, onChoose, onClose } = props
  const siblings = tree.byNode.get(nodeId) ?? []
  const rank = record
    ? run.records.filter((one) => one.nodeId === nodeId).findIndex(({ id }) => id === record.id)
    : 0
  const found = useRecord(run.id, record, known, Math.max(0, rank))
  const node = graph?.nodes.find(({ id }) => id === nodeId)
  const name = record ? nameRecord(record) : node?.name || nodeId
  const place = useRef<HTMLElement>(null)
  // A new record is shown from its top, wherever the last one was scrolled to.
  const shown = record?.id ?? nodeId
  // biome-ignore lint/correctness/useExhaustiveDependencies: another record begins at its top
  useEffect(() => {
    place.current?.scrollTo({ top: 0 })
  }, [shown])
  return (
    <aside className="detail" aria-label={`Record of ${name}`} ref={place}>
      <header>
        <div className="detail-title">
          <h2>
            {name}
            {record?.iteration != null && <span className="quiet"> #{record.iteration}</span>}
          </h2>
          <Button small look="plain" icon="close" aria-label="Close the record" onClick={onClose} />
        </div>
        <div className="row">
          {record ? <StatusBadge status={record.status} /> : <Pill>Not executed</Pill>}
          <span className="quiet">{record ? describeRecord(record) : node && nameConstant(node.type)}</span>
          {record && <Marks record={record} known={found.record} />}
        </div>
        {siblings.length > 1 && record && <Siblings records={siblings} record={record} onChoose={onChoose} />}
      </header>
      {record && <Content key={record.id} {...props} record={record} name={name} found={found} now={now} />}
      {node && Object.keys(Object(node.config)).length > 0 && (
        <details className="detail-config">
          <summary>Settings of the node</summary>
          <JsonTree label="Settings" value={node.config} />
        </details>
      )}
    </aside>
  )
}
