import { Fragment, type ReactNode } from 'react'
import { useQueryState } from '../kit/address.ts'
import { Field } from '../kit/controls/field.tsx'
import { Tabs } from '../kit/controls/tabs.tsx'
import { PageHeader } from '../kit/header.tsx'
import { Empty } from '../kit/states.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'
import { BatchesView } from './batches.tsx'
import { ConfigView, TeamConfigView } from './config.tsx'
import { DimensionsView } from './dimensions.tsx'
import { ScoresView } from './scores.tsx'

/** How well a workflow answers: its runs as they are judged, batches of cases, and what is judged. */
export function EvaluationPage() {
  const [query, setQuery] = useQueryState({ workflowId: '', tab: 'scores', page: '' })
  const { workflowId } = query
  const ofWorkflow = (content: ReactNode) => (
    <>
      <div className="filters">
        <Field label="Workflow">
          <WorkflowChoice
            value={workflowId}
            onChange={(next) => setQuery({ workflowId: next })}
            placeholder="Choose a workflow"
          />
        </Field>
      </div>
      {workflowId === '' ? (
        <Empty
          title="Choose a workflow"
          text="A model judges its runs as they end, or a batch of cases that you give: from 1 to 5 in each dimension."
        />
      ) : (
        <Fragment key={workflowId}>{content}</Fragment>
      )}
    </>
  )
  return (
    <>
      <PageHeader title="Evaluation" />
      <Tabs
        label="Evaluation"
        value={query.tab}
        onChange={(tab) => setQuery({ tab })}
        tabs={[
          { id: 'scores', label: 'Runs', content: ofWorkflow(<ScoresView workflowId={workflowId} />) },
          { id: 'batches', label: 'Batches', content: ofWorkflow(<BatchesView workflowId={workflowId} />) },
          { id: 'settings', label: 'Settings', content: ofWorkflow(<ConfigView workflowId={workflowId} />) },
          { id: 'team', label: "The team's settings", content: <TeamConfigView /> },
          { id: 'dimensions', label: 'Dimensions', content: <DimensionsView /> },
        ]}
      />
    </>
  )
}
