/** How a node, an edge or a note is marked in a drawing: by a colour, and by a word that screen readers get too. */
export type Mark = {
  tone: 'good' | 'bad' | 'busy' | 'warn'
  text: string
  dashed?: boolean
  /** Drawn at its corner. */
  sign?: string
}
