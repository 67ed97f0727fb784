import { useQueryState } from '../kit/address.ts'
import { PageHeader } from '../kit/header.tsx'
import { Tabs } from '../kit/tabs.tsx'
import { Playground } from './playground.tsx'
import { Rules } from './rules.tsx'

/** Where texts are checked by hand, and the team's own rules are kept. */
export function GuardrailsPage() {
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
        ]}
      />
    </>
  )
}
