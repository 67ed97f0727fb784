/** How the whole graph is brought into sight. */
export const FIT = { padding: 0.16, maxZoom: 1 }
