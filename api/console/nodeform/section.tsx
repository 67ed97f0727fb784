import { useState } from 'react'

type SectionProps = { title: string; note?: string; open: boolean; children: React.ReactNode }

/** It opens for what is set or wrong in it, and stays as one has left it. */
export function Section({ title, note, open, children }: SectionProps) {
  const [chosen, setChosen] = useState<boolean | null>(null)
  const isOpen = chosen ?? open
  return (
    <details className="section" open={isOpen}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
      <summary
        onClick={(event) => {
          event.preventDefault()
          setChosen(!isOpen)
        }}
      >
        {title} {note && <span className="quiet">{note}</span>}
      </summary>
      {isOpen && children}
    </details>
  )
}
