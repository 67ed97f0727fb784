import { useQueryState } from '../kit/address.ts'
import { Tabs } from '../kit/controls/tabs.tsx'
import { PageHeader } from '../kit/header.tsx'
import { useRole } from '../shell/role.tsx'
import { Exemplars } from './exemplars.tsx'
import { ModelView } from './model.tsx'
import { Playground } from './playground.tsx'
import { Rules } from './rules.tsx'

/** Where texts are checked by hand, and what the team adds to the checks: rules, exemplars, a model. */
export function GuardrailsPage() {
  const may = useRole()
  const [query, setQuery] = useQueryState({ tab: 'playground' })
  return (
    <>
      <PageHeader title="Guardrails" />
      <Tabs
        label="Guardrails"
        value={query.tab}
        onChange={(tab) => setQuery({ tab })}
        tabs={[
          { id: 'playground', label: 'Playground', content: <Playground /> },
          { id: 'rules', label: 'Rules', content: <Rules /> },
          ...(may('OPERATOR') ? [{ id: 'exemplars', label: 'Exemplars', content: <Exemplars /> }] : []),
          ...(may('BUILDER') ? [{ id: 'model', label: 'Model', content: <ModelView /> }] : []),
        ]}
      />
    </>
  )
}
