/** A release whose workflow code fails for every run, as one does that cannot replay a history. */
export async function runGraph(): Promise<void> {
  throw new TypeError('this release is broken')
}
