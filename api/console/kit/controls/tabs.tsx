import { Tabs as Base } from '@base-ui/react/tabs'
import type { ReactNode } from 'react'
import '../overlays/overlays.css'

type Tab = { id: string; label: ReactNode; content: ReactNode }

/** Views of the same thing. Keep the chosen one in the address: `useQueryState({ tab: 'first' })`. */
export function Tabs({
  label,
  tabs,
  value,
  onChange,
}: {
  label: string
  tabs: Tab[]
  value: string
  onChange: (id: string) => void
}) {
  return (
    <Base.Root value={value} onValueChange={(next) => onChange(String(next))}>
      <Base.List className="tabs" aria-label={label}>
        {tabs.map((tab) => (
          <Base.Tab key={tab.id} value={tab.id} className="tab">
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.id} value={tab.id}>
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  )
}
